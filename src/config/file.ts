/** The bytes of a small file, bounded and never from anything else than a file. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** The bytes, or in words what came instead: `a folder`. */
export function readSmallFile(path: string, bytesMax: number): Buffer | string {
  let file: number;
  try {
    // A pipe without a writer would hold the open up for ever.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    return openWords(thrown);
  }
  try {
    const found = fstatSync(file);
    if (found.isDirectory()) return 'a folder';
    if (!found.isFile()) return 'something that is no file';
    if (found.size > bytesMax) return `${found.size} bytes`;
    const buffer = Buffer.alloc(bytesMax + 1);
    let length = 0;
    for (;;) {
      const read = readSync(file, buffer, length, buffer.length - length, null);
      length += read;
      if (read === 0 || length === buffer.length) break;
    }
    return length > bytesMax ? `more than ${bytesMax} bytes` : buffer.subarray(0, length);
  } catch (thrown) {
    return openWords(thrown);
  } finally {
    closeSync(file);
  }
}

function openWords(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === undefined) throw thrown;
  if (code === 'ENOENT') return 'none';
  if (code === 'EACCES' || code === 'EPERM') return `one that may not be read (${code})`;
  return code === 'EISDIR' ? 'a folder' : `the error ${code}`;
}
