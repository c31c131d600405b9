/** What a scenario needs is missing, with the reason. Never a pass. */
export class CouldNotRun extends Error {
  override readonly name = 'CouldNotRun';
}
