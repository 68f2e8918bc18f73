/** Which gateway files are served from a data directory, so that commands without `--config` act on the gateway that runs. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readGatewayFile } from '../gateway/config.ts';

const folder = 'serving';
const demo = 'config/demo.yaml';

/** Notes the files of this process in their data directories until it ends. */
export function noteServed(
  files: readonly string[],
  atEnd = (end: () => void): void => void process.once('exit', end),
): void {
  const paths = files.map((file) => resolve(file));
  const notes = notesOf(files);
  for (const note of notes) {
    try {
      mkdirSync(join(note, '..'), { recursive: true });
      writeFileSync(note, JSON.stringify(paths));
    } catch {
      // A full disk keeps no gateway from serving: its commands then need --config.
    }
  }
  atEnd(() => {
    for (const note of notes) removeNote(note);
  });
}

/** None for files that cannot be read: the start says so by itself. */
function notesOf(files: readonly string[]): string[] {
  try {
    const directories = new Set(files.map((file) => readGatewayFile(file).directory));
    return [...directories].map((directory) => join(directory, folder, `${process.pid}.json`));
  } catch {
    return [];
  }
}

function removeNote(note: string): void {
  try {
    rmSync(note, { force: true });
  } catch {
    // The process has ended: its note is passed over.
  }
}

/** The files that living processes serve from this directory. */
function servedFiles(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(join(directory, folder));
  } catch {
    return [];
  }
  const found = names
    .filter((name) => isAlive(Number.parseInt(name, 10)))
    .flatMap((name) => filesIn(join(directory, folder, name)));
  return [...new Set(found)];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** None where another process writes it at the moment. */
function filesIn(note: string): string[] {
  try {
    return (JSON.parse(readFileSync(note, 'utf8')) as unknown[]).filter((file) => typeof file === 'string');
  } catch {
    return [];
  }
}

/** The file of a command that names none, with a sentence that says which one and why. */
export function defaultFile(directory = resolve(process.env['DATA_DIR'] || './data')): { file: string; why: string } {
  const [file, ...others] = servedFiles(directory);
  const choose = '--config FILE chooses another one';
  if (file === undefined)
    return { file: demo, why: `No gateway runs from ${directory}: this is about ${demo}; ${choose}.` };
  if (others.length === 0) return { file, why: `This is about ${file}, which is served here; ${choose}.` };
  return {
    file,
    why: `This is about ${file}; ${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} served here, too: ${choose}.`,
  };
}
