/** TypeScript's own syntax trees of this repository, and whether it accepts a changed file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { API, type Snapshot } from 'typescript/unstable/sync';

export class Syntax {
  readonly #root: string;
  readonly #changed = new Map<string, string>();
  readonly #api: API;
  #snapshot: Snapshot;

  constructor(root: string) {
    this.#root = root;
    this.#api = new API({ cwd: root, fs: { readFile: (path) => this.#changed.get(path) } });
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
  }

  tree(file: string): SourceFile {
    const tree = this.#program().getSourceFile(join(this.#root, file));
    if (tree === undefined) throw new Error(`${file} is not part of tsconfig.json`);
    return tree;
  }

  /** Whether the file's own types hold with this text. */
  accepts(file: string, text: string): boolean {
    const path = join(this.#root, file);
    this.#set(path, text);
    const program = this.#program();
    const faults = [...program.getSyntacticDiagnostics(path), ...program.getSemanticDiagnostics(path)];
    this.#set(path, readFileSync(path, 'utf8'));
    return faults.length === 0;
  }

  close(): void {
    this.#api.close();
  }

  #program() {
    return this.#snapshot.getProjects()[0]!.program;
  }

  #set(path: string, text: string): void {
    this.#changed.set(path, text);
    const before = this.#snapshot;
    this.#snapshot = this.#api.updateSnapshot({ fileChanges: { changed: [path] } });
    before.dispose();
  }
}
