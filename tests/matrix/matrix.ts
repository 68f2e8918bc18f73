/** Plays all cells of the matrix, and words them as a page. */
import type { Result } from '../conformance/results.ts';
import { type CellResult, playCell } from './cell.ts';
import { type ProtocolName, protocolNames } from './scenario.ts';
import { type Scenario, scenarios } from './scenarios.ts';
import { startMatrixStage } from './stage.ts';

export interface PlayedCell extends CellResult {
  readonly scenario: Scenario;
  readonly client: ProtocolName;
  readonly vendor: ProtocolName;
  readonly isStream: boolean;
}

/** One cell after the other, each through real sockets. `only` picks scenarios by name. */
export async function playMatrix(only?: (scenario: Scenario) => boolean): Promise<PlayedCell[]> {
  const stage = await startMatrixStage();
  const cells: PlayedCell[] = [];
  try {
    for (const scenario of scenarios.filter(only ?? (() => true))) {
      for (const client of protocolNames) {
        for (const vendor of protocolNames) {
          for (const isStream of [false, true]) {
            const result = await playCell(stage, scenario, { client, vendor, isStream });
            cells.push({ ...result, scenario, client, vendor, isStream });
          }
        }
      }
    }
  } finally {
    await stage.stop();
  }
  return cells;
}

export function nameOf({ scenario, client, vendor, isStream }: PlayedCell): string {
  return `${scenario.name}: ${client} client, ${vendor} upstream, ${isStream ? 'streamed' : 'whole'}`;
}

/** Cells by verdict for each pair of protocols, whole and streamed. */
export function countVerdicts(cells: readonly PlayedCell[]): Result[] {
  const pairs = Map.groupBy(cells, ({ client, vendor }) => `${client} → ${vendor}`);
  const verdicts = ['exact', 'mapped', 'emulated', 'refused', 'cannot ask'] as const;
  return [...pairs].map(([what, played]) => ({
    what,
    counts: Object.fromEntries(
      verdicts.map((one) => [one, played.filter(({ verdict }) => verdict === one).length] as const),
    ),
  }));
}

/** The generated part of the page: a table, and what it leaves unsaid. */
export function wordMatrix(cells: readonly PlayedCell[]): string {
  const head = protocolNames.flatMap((client) => protocolNames.map((vendor) => `${client} → ${vendor}`));
  const rows = scenarios.map((scenario) => {
    const entries = protocolNames.flatMap((client) =>
      protocolNames.map((vendor) =>
        entryOf(cells.filter((cell) => cell.scenario === scenario && cell.client === client && cell.vendor === vendor)),
      ),
    );
    return `| ${scenario.name} | ${entries.join(' | ')} |`;
  });
  return [
    `| client → upstream | ${head.join(' | ')} |`,
    `|${' --- |'.repeat(head.length + 1)}`,
    ...rows,
    '',
    'The rows:',
    '',
    ...scenarios.map(({ name, about }) => `- **${name}**: ${about}`),
    '',
    ...notesOf(cells),
  ].join('\n');
}

function wordOf(verdict: CellResult['verdict']): string {
  return verdict === 'cannot ask' ? '–' : verdict;
}

/** One word where whole and streamed agree. */
function entryOf(cells: readonly PlayedCell[]): string {
  const verdicts = [
    ...new Set(cells.map(({ verdict, dropped }) => (dropped.length > 0 ? `${verdict} *` : wordOf(verdict)))),
  ];
  return verdicts.length === 1 ? verdicts[0]! : cells.map(({ verdict }) => verdict).join(' / ');
}

function notesOf(cells: readonly PlayedCell[]): string[] {
  const lines = new Map<string, Set<string>>();
  const note = (text: string, { client, vendor }: PlayedCell) => {
    const places = lines.get(text) ?? new Set();
    lines.set(text, places.add(`${client} → ${vendor}`));
  };
  for (const cell of cells) {
    const { name } = cell.scenario;
    if (cell.verdict === 'emulated') note(`- ${name}, emulated: ${cell.note}`, cell);
    if (cell.verdict === 'refused') note(`- ${name}, refused: the error names \`${cell.note}\``, cell);
    for (const field of cell.dropped) note(`- ${name} *: \`${field}\` is left out, and named in the header`, cell);
  }
  if (lines.size === 0) return [];
  return [
    'What stands behind the words:',
    '',
    ...[...lines].map(([text, places]) => `${text} (${[...places].join(', ')})`),
    '',
  ];
}
