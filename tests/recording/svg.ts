/** Draws a terminal as an animated SVG: lines appear by the words of their commands and the lines of their output, and scroll. Pure. */

export interface Step {
  /** As a person types it. */
  readonly command: string;
  readonly output: readonly string[];
}

interface Piece {
  readonly text: string;
  /** Begins at this column of this line. */
  readonly column: number;
  readonly line: number;
  readonly atMs: number;
  readonly kind: 'command' | 'output';
}

const columns = 114;
const rows = 26;
const columnWidth = 7.8;
const rowHeight = 18;
const margin = 14;
const wordMs = 130;
const outputMs = 500;
const lineMs = 60;
const readMs = 2_200;
const restMs = 5_000;

export function terminalSvg(title: string, steps: readonly Step[]): string {
  const { pieces, lines, totalMs } = layOut(steps);
  const percent = (atMs: number) => `${Number(((100 * atMs) / totalMs).toFixed(2))}%`;
  const times = [...new Set(pieces.map(({ atMs }) => atMs))];
  const shown = times.map((atMs, index) => `@keyframes t${index}{0%{opacity:0}${percent(atMs)}{opacity:1}}`);
  const scrolled = scrolls(pieces).map(
    ({ atMs, line }) => `${percent(atMs)}{transform:translateY(${-rowHeight * Math.max(0, line + 1 - rows)}px)}`,
  );
  const texts = pieces.map(({ text, column, line, atMs, kind }) => {
    const x = (column * columnWidth).toFixed(1);
    const style = `animation-name:t${times.indexOf(atMs)}`;
    const length = (text.length * columnWidth).toFixed(1);
    return `<text class="${kind[0]}" x="${x}" y="${rowHeight * line}" textLength="${length}" style="${style}">${escaped(text)}</text>`;
  });
  const width = Math.ceil(2 * margin + columns * columnWidth);
  const height = 2 * margin + rows * rowHeight;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    '<style>',
    'text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#c9d1d9}.c{fill:#7ee787}',
    `text,#s{animation-duration:${totalMs}ms;animation-iteration-count:infinite;animation-timing-function:step-end}`,
    `#s{animation-name:s}@keyframes s{${scrolled.join('')}}`,
    ...shown,
    `@media(prefers-reduced-motion:reduce){text,#s{animation:none}#s{transform:translateY(${-rowHeight * Math.max(0, lines - rows)}px)}}`,
    '</style>',
    '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
    `<clipPath id="w"><rect x="${margin}" y="${margin}" width="${width - 2 * margin}" height="${rows * rowHeight}"/></clipPath>`,
    `<g clip-path="url(#w)"><g transform="translate(${margin} ${margin + 13})"><g id="s">`,
    ...texts,
    '</g></g></g>',
    '</svg>',
  ].join('\n')}\n`;
}

function layOut(steps: readonly Step[]): { pieces: Piece[]; lines: number; totalMs: number } {
  const pieces: Piece[] = [];
  let line = 0;
  let atMs = 400;
  for (const { command, output } of steps) {
    for (const typed of `$ ${command}`.split('\n').flatMap(wrapped)) {
      let column = 0;
      for (const word of typed.match(/ *[^ ]+/g) ?? []) {
        pieces.push({ text: word, column, line, atMs, kind: 'command' });
        column += word.length;
        atMs += wordMs;
      }
      line += 1;
    }
    atMs += outputMs;
    for (const said of output.flatMap(wrapped)) {
      if (said !== '') pieces.push({ text: said, column: 0, line, atMs, kind: 'output' });
      line += 1;
      atMs += lineMs;
    }
    line += 1;
    atMs += output.length === 0 ? 0 : readMs;
  }
  return { pieces, lines: line, totalMs: atMs + restMs };
}

/** The lowest line at each time that it gets lower. */
function scrolls(pieces: readonly Piece[]): { atMs: number; line: number }[] {
  const found = [{ atMs: 0, line: 0 }];
  for (const { atMs, line } of pieces) if (line > found.at(-1)!.line) found.push({ atMs, line });
  return found.filter(({ line }, index) => index === 0 || line >= rows);
}

function wrapped(text: string): string[] {
  return text === '' ? [''] : text.match(new RegExp(`.{1,${columns}}`, 'gu'))!;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
