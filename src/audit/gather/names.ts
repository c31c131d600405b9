/** What a file's name says of the node that it is of. */

/** Parts of names that tell the kind of a file, not the node. */
const KINDS =
  /^(?:server|info|serverinfo|get|model|models|modelinfo|v1|loads|load|metrics|metric|prometheus|startup|start|boot|stdout|stderr|out|output|logs?|props|slots|version|env|environ|environment|command|cmd|cmdline|args|launch|before|after|idle|capture|node|pod|\d{1,2})$/i;

/** `prefill-startup.log` and `prefill.server_info.out` are of `prefill`; null: the name tells only the kind. */
export function nodeNameOf(file: string): string | null {
  const base = file.slice(file.lastIndexOf('/') + 1).replace(/\.(?:log|txt|json|jsonl|ya?ml|out|prom|sh|env|gz)$/i, '');
  const parts = base.split(/[._\s]+|-(?=\D)|(?<=\D)-/).filter((part) => part !== '');
  const kept = parts.filter((part) => !KINDS.test(part));
  return kept.length === 0 ? null : rejoined(base, kept);
}

/** With the parting signs that stood there, where the parts are still side by side. */
function rejoined(base: string, kept: readonly string[]): string {
  const joined = kept.join('-');
  const start = base.indexOf(kept[0]!);
  const end = base.lastIndexOf(kept.at(-1)!) + kept.at(-1)!.length;
  const span = base.slice(start, end);
  return span.split(/[._\s-]+/).length === joined.split('-').length ? span : joined;
}

/** For comparing: `prefill_0`, `Prefill-0` and `prefill-0` are one name. */
export function nameKey(name: string): string {
  return name.toLowerCase().replaceAll(/[._\s]+/g, '-');
}
