/** Processor time by test file, with that of the processes it has started: `--times N` prints the N files that take most. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { descendants } from './end.ts';

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: a hundredth of a second each, in every Linux. */
const ticksPerSecond = 100;

const timesIn = (directory: string) => join(directory, 'times');
let counted = 0;

/** Counts what this process and its own have used since the last file for this one. */
export function countFile(directory: string, file: string): void {
  const seconds = usedSeconds();
  appendFileSync(timesIn(directory), `${Math.max(0, seconds - counted).toFixed(2)} ${file}\n`);
  counted = seconds;
}

/** The files that have taken most, and all together. */
export function printTimes(directory: string, most: number): void {
  const lines = existsSync(timesIn(directory)) ? readFileSync(timesIn(directory), 'utf8').trim().split('\n') : [];
  const sums = new Map<string, number>();
  for (const line of lines) {
    const [seconds, file] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)];
    sums.set(file, (sums.get(file) ?? 0) + Number(seconds));
  }
  const all = [...sums].toSorted(([, a], [, b]) => b - a);
  for (const [file, seconds] of all.slice(0, most)) console.log(`${seconds.toFixed(2).padStart(8)} s  ${file}`);
  console.log(
    `${all
      .reduce((sum, [, seconds]) => sum + seconds, 0)
      .toFixed(2)
      .padStart(8)} s  of a processor, in all`,
  );
}

/** Processor time of this process and of those it has started, also of those that have ended and were waited for. */
function usedSeconds(): number {
  let ticks = 0;
  for (const pid of [process.pid, ...descendants(process.pid)]) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // Behind the name, which may have spaces: user and system time, own and of children.
      for (const field of stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 15))
        ticks += Number(field);
    } catch {
      // It has ended in the meantime.
    }
  }
  return ticks / ticksPerSecond;
}
