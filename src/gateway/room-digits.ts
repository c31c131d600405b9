/** Rooms are 63-bit numbers, which JSON.parse rounds. Only needed where the guard `policy` is off and a body may name one. */
const ROOM = /"bootstrap_room"\s*:\s*(\d{1,19})\s*[,}]/;

/** The engine fields with the room's digits as they came; inside a string of the body the quotes are escaped and don't match. */
export function exactRoom(fields: Readonly<Record<string, unknown>>, body: Buffer): Readonly<Record<string, unknown>> {
  const room = fields.bootstrap_room;
  if (typeof room !== 'number' || Number.isSafeInteger(room)) return fields;
  const digits = ROOM.exec(body.toString('utf8'))?.[1];
  return digits === undefined ? fields : { ...fields, bootstrap_room: digits };
}
