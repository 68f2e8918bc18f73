/** How long random histories are: short in `npm test`, whole in `npm run test:histories`, which runs the files that ask here. */

/** Every history at its full length. */
export const isWhole = process.env['TEST_HISTORIES'] === 'whole';

/** Runs of a property: `whole` of them, or fewer where everything is tested. */
export function runsOf(everyday: number, whole: number): number {
  return isWhole ? whole : everyday;
}
