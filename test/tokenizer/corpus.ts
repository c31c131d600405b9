/** The text that speed is measured over: what this project's own files hold, and sentences in many scripts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Prng } from '../../src/base/prng.js';
import { ROOT } from './packages.js';

/** Of each ten characters one is of these. */
const SENTENCES = [
  'Die Brücke über den Fluß wurde im Frühjahr geschlossen, weil das Hochwasser höher stieg als je zuvor.',
  'Les élèves n’ont pas reçu leurs résultats ; l’école les publiera dès la semaine prochaine.',
  'El año pasado viajamos por la costa y comimos pescado fresco cada mañana.',
  'Вчера вечером мы долго говорили о том, как изменится город через десять лет.',
  'Η βιβλιοθήκη ανοίγει στις εννέα το πρωί και κλείνει αργά το βράδυ.',
  'ראינו את הים מהחלון של המלון בפעם הראשונה.',
  'ذهبنا إلى السوق القديم لشراء التوابل والخبز الطازج.',
  'हमने नदी के किनारे बैठकर देर तक बातें कीं।',
  'วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนสาธารณะกัน',
  '昨天下午我们在图书馆讨论了新的研究计划，大家都提出了很好的建议。',
  '昨日の会議では、新しいシステムの設計についてくわしく話し合いました。',
  '어제 저녁에 친구들과 함께 새로 생긴 식당에 갔습니다.',
  'Hôm qua trời mưa to nên chúng tôi ở nhà đọc sách.',
  'Done 🎉 see you soon 👩‍👩‍👧 (15:30 → 17:45), 37 °C ± 0.5 €12.99 ½ ∑ x² ≤ 4',
];

function files(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|md|json|mjs)$/.test(name) && !/node_modules|\.data\.ts$|\.wasm\.ts$|-lock/.test(name))
    .sort()
    .map((name) => readFileSync(join(ROOT, folder, name), 'utf8'));
}

/** Some `bytes` of UTF-8: the same text for the same tree and seed. */
export function mixedCorpus(bytes: number, seed: number): string {
  const prng = new Prng(seed);
  const texts = prng.shuffle(['docs', 'src', 'test', 'tools', 'bench'].flatMap(files));
  let text = '';
  for (let at = 0; Buffer.byteLength(text) < bytes; at++) {
    const next = texts[at % texts.length]!;
    text += next;
    for (let foreign = 0; foreign < next.length / 10; ) {
      // Words change places, so that sentences do not repeat.
      const sentence = prng.shuffle(prng.pick(SENTENCES).split(' ')).join(' ');
      text += `${sentence}\n`;
      foreign += sentence.length;
    }
  }
  return Buffer.from(text).subarray(0, bytes).toString('utf8');
}
