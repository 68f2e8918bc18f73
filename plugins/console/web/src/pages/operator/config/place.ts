/** Finds the place of a cursor in a YAML file that is being edited and may not parse. Pure. */
import { listStep, type Step } from './schema.ts';

export interface Place {
  /** The members around the cursor, outermost first. */
  readonly path: readonly Step[];
  /** `key`: a member's name is being written; `value`: what follows it. */
  readonly at: 'key' | 'value';
  /** Offset at which the word begins that is being written. */
  readonly from: number;
  /** Members that this mapping has on other lines already. */
  readonly taken: ReadonlySet<string>;
}

/** A mapping or list that is open at some line. */
interface Frame {
  /** Column of the name or dash that opened it; -1: the file itself. */
  readonly column: number;
  readonly step: Step | undefined;
  /** Members it has by name. */
  readonly names: Set<string>;
}

const keyPattern = /^(?:"([^"]*)"|'([^']*)'|([^\s#:{}[\],&*!|>%@`"'-][^:#{}[\],]*?))\s*:(?=\s|$)/;

/** The place of an offset; undefined inside a comment. */
export function placeAt(text: string, offset: number): Place | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const before = text.slice(start, offset);
  if (/(^|\s)#/.test(before)) return undefined;
  const frames: Frame[] = [{ column: -1, step: undefined, names: new Set() }];
  for (const line of meaningful(text.slice(0, start))) open(frames, line);
  const around = open(frames, before);
  const body = before.slice(around.column);
  const keyed = keyPattern.exec(body);
  const from = start + around.column + (keyed?.[0].length ?? 0);
  if (keyed !== null || /^[[{]/.test(body)) return inFlow(text.slice(from, offset), from, pathOf(frames));
  const { frame } = around;
  const path = pathOf(frames);
  const end = text.indexOf('\n', offset);
  for (const line of end < 0 ? [] : meaningful(text.slice(end + 1))) {
    open(frames, line);
    if (!frames.includes(frame)) break;
  }
  return { path, at: frame.step === listStep ? 'value' : 'key', from, taken: frame.names };
}

/** Lines that are neither empty nor a comment. */
function meaningful(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '' && !/^\s*#/.test(line));
}

function pathOf(frames: readonly Frame[]): Step[] {
  return frames.flatMap(({ step }) => (step === undefined ? [] : [step]));
}

/** Reads a line: closes the blocks that it ends, opens those that it begins. Returns where its content begins, and in what. */
function open(frames: Frame[], line: string): { readonly column: number; readonly frame: Frame } {
  const head = /^(\s*)((?:-(?:\s+|$))*)/.exec(line)!;
  const column = head[0].length;
  for (const dash of head[2]!.matchAll(/-/g)) push(frames, head[1]!.length + dash.index, listStep);
  const keyed = keyPattern.exec(line.slice(column));
  const name = keyed === null ? undefined : (keyed[1] ?? keyed[2] ?? keyed[3]);
  if (name !== undefined) push(frames, column, name);
  else close(frames, column, undefined);
  return { column, frame: frames.at(-1)! };
}

function push(frames: Frame[], column: number, step: Step): void {
  close(frames, column, step);
  if (step !== listStep) frames.at(-1)!.names.add(step);
  frames.push({ column, step, names: new Set() });
}

/** Ends what does not hold something of this column. A list may stand at the column of its own member's name. */
function close(frames: Frame[], column: number, step: Step | undefined): void {
  for (let top = frames.at(-1)!; top.column >= column; top = frames.at(-1)!) {
    if (top.column === column && step === listStep && top.step !== listStep) return;
    frames.pop();
  }
}

/** Goes on into `{ a: 1, b: [` of one line. */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: a scanner with one branch for each character reads best in one loop.
function inFlow(text: string, from: number, base: readonly Step[]): Place {
  const stack: { path: readonly Step[]; kind: 'map' | 'list' | 'value'; key?: string; taken: Set<string> }[] = [
    { path: base, kind: 'value', taken: new Set() },
  ];
  let word = 0;
  let quote = '';
  for (let index = 0; index < text.length; index++) {
    const letter = text[index]!;
    const top = stack.at(-1)!;
    if (quote !== '') {
      if (letter === quote) quote = '';
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === '{' || letter === '[') {
      const inner: readonly Step[] = top.kind === 'map' ? [...top.path, top.key ?? ''] : top.path;
      const path: readonly Step[] = letter === '[' ? [...inner, listStep] : inner;
      stack.push({ path, kind: letter === '{' ? 'map' : 'list', taken: new Set() });
      word = index + 1;
    } else if (letter === '}' || letter === ']') {
      if (stack.length > 1) stack.pop();
      word = index + 1;
    } else if (letter === ',') {
      delete top.key;
      word = index + 1;
    } else if (letter === ':' && top.kind === 'map' && top.key === undefined) {
      top.key = text
        .slice(word, index)
        .trim()
        .replace(/^["']|["']$/g, '');
      top.taken.add(top.key);
      word = index + 1;
    }
  }
  const top = stack.at(-1)!;
  const lead = /^\s*/.exec(text.slice(word))![0].length;
  const atKey = top.kind === 'map' && top.key === undefined;
  return {
    path: top.kind === 'map' && !atKey ? [...top.path, top.key!] : top.path,
    at: atKey ? 'key' : 'value',
    from: from + word + lead,
    taken: top.taken,
  };
}
