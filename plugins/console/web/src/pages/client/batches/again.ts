/** The lines of an ended batch that did not succeed, as the input of another one. */
import { linkTo } from '../../../api/client.ts';
import type { BatchRow } from '../../../api/types.ts';

/** What result files of both protocols say of a line. */
interface ResultLine {
  readonly custom_id?: unknown;
  readonly error?: unknown;
  readonly response?: { readonly status_code?: unknown } | null;
  readonly result?: { readonly type?: unknown };
}

/** The id of a line in a result file, if the line succeeded. */
function succeededId(text: string): string | undefined {
  const { custom_id: id, error, response, result } = JSON.parse(text) as ResultLine;
  if (typeof id !== 'string') return undefined;
  if (result !== undefined) return result.type === 'succeeded' ? id : undefined;
  const status = response?.status_code;
  return (error ?? null) === null && typeof status === 'number' && status < 400 ? id : undefined;
}

/** The lines of a text that comes in pieces, without empty ones. */
async function* linesIn(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') yield line;
  }
  if (rest.trim() !== '') yield rest;
}

/** Lines of the input without a line of the same id that succeeded. */
export async function failedLines(input: AsyncIterable<string>, results: AsyncIterable<string>): Promise<string[]> {
  const done = new Set<string>();
  for await (const line of linesIn(results)) {
    const id = succeededId(line);
    if (id !== undefined) done.add(id);
  }
  const failed: string[] = [];
  for await (const line of linesIn(input))
    if (!done.has((JSON.parse(line) as { custom_id: string }).custom_id)) failed.push(line);
  return failed;
}

/** Reads input and results of a batch. Files that are gone fail with their status. */
export async function failedInput({ id, inputFile, outputFile }: BatchRow): Promise<File> {
  const lines = await failedLines(textOf(inputFile), outputFile === null ? nothing() : textOf(outputFile));
  return new File(
    lines.map((line) => `${line}\n`),
    `${id}_again.jsonl`,
    { type: 'application/jsonl' },
  );
}

async function* nothing(): AsyncGenerator<string> {}

async function* textOf(file: string): AsyncGenerator<string> {
  const answer = await fetch(linkTo(`/files/${encodeURIComponent(file)}/content`));
  if (!answer.ok) throw new Error(String(answer.status));
  const decoder = new TextDecoder();
  const reader = answer.body!.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read())
    yield decoder.decode(read.value, { stream: true });
  yield decoder.decode();
}
