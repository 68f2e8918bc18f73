/** `npm run help [-- WORD]`: the scripts of package.json by what they are for, about how long each takes on two idle cores; with a word those that have it. */
import { scripts } from './scripts.ts';

const word = (process.argv[2] ?? '').toLowerCase();
for (const [group, all] of Object.entries(scripts)) {
  const lines = all.filter((line) => line.join(' ').toLowerCase().includes(word));
  if (lines.length === 0) continue;
  process.stdout.write(`${group}\n`);
  for (const [script, time, purpose] of lines)
    process.stdout.write(`  ${script.padEnd(42)}  ${time.padEnd(18)}  ${purpose}\n`);
  process.stdout.write('\n');
}
process.stdout.write('npm run NAME. All that must hold of a commit, with a PostgreSQL of its own: .ci/run\n');
