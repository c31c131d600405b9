/** How the page writes numbers and times. `null` is not known, and never looks like a number. */
export const UNKNOWN = 'unknown';
export const NONE = '–';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function whole(value: number | null): string {
  return value === null ? UNKNOWN : WHOLE.format(value);
}

/** Three digits that count, with the unit that keeps the number short. */
export function duration(ms: number | null): string {
  if (ms === null) return NONE;
  return ms >= 1000 ? `${threeDigits(ms / 1000)} s` : `${threeDigits(ms)} ms`;
}

function threeDigits(value: number): string {
  if (value >= 100) return WHOLE.format(value);
  return value.toFixed(value >= 10 ? 1 : 2);
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return NONE;
  if (share > 0 && share < 0.01) return '< 1 %';
  return `${Math.round(share * 100)} %`;
}

/** The time of day here, `14:03:09`; with the date when it is another day. */
export function clockTime(ms: number): string {
  const at = new Date(ms);
  const time = at.toLocaleTimeString('en-GB');
  return at.toDateString() === new Date().toDateString() ? time : `${at.toISOString().slice(0, 10)} ${time}`;
}

/** `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${seconds} s`;
  if (hours === 0) return `${minutes} min`;
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
