/** How long random histories are: short in `npm test`, whole in `npm run test:histories`, which runs the files that ask here. */

/** Parts of the full length that can be asked for. */
const parts = new Map([
  ['whole', 1],
  ['tenth', 1 / 10],
]);
const part = parts.get(process.env['TEST_HISTORIES'] ?? '') ?? 0;

/** Every history at its full length. */
export const isWhole = part === 1;

/** Runs of a property: `whole` of them, or fewer where everything is tested. */
export function runsOf(everyday: number, whole: number): number {
  return Math.max(everyday, Math.ceil(whole * part));
}
