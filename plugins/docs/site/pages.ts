/** Every page of this gateway as Markdown: the shipped ones, those of programs and models, and the operator's own. */
import { readFileSync } from 'node:fs';
import { type DocsConfig, frameLanguages, type Language } from '../config.ts';
import { keyHeader } from './calls.ts';
import { exampleModel, type Facts } from './facts.ts';
import { modelPage, modelPath, modelTables } from './model-blocks.ts';
import { programList, programPage, servedPrograms } from './programs.ts';
import {
  addressTables,
  carrierList,
  errorSamples,
  errorTable,
  headerTable,
  limitTable,
  planTable,
} from './rule-blocks.ts';
import { fillTemplate, type Gaps } from './template.ts';

export interface Page {
  /** The address below `/docs/`; empty: the first page. */
  readonly path: string;
  /** The operator's own name of it; undefined: that of the frame's language, or the first heading. */
  readonly title: string | undefined;
  /** The name of a shipped page: its title stands in each language of the frame. */
  readonly name: string | undefined;
  readonly group: 'begin' | 'rules' | 'own' | 'clients' | 'models';
  /** Language of the text. */
  readonly language: Language;
  /** undefined: there is nothing to say here. */
  markdown(): string | undefined;
}

const shippedPages = {
  begin: ['start', 'clients', 'models', 'protocols'],
  rules: ['limits', 'errors', 'headers', 'failed-calls', 'translation', 'never-stored'],
} as const;

const templates = new Map<string, string>();
function templateOf(name: string): string {
  const known = templates.get(name) ?? readFileSync(new URL(`../pages/${name}.md`, import.meta.url), 'utf8');
  templates.set(name, known);
  return known;
}

/** The sentence and the table of a page of the operator's guide, which says the same. */
function fromGuide(name: string): string {
  const text = readFileSync(new URL(`../guide/${name}.md`, import.meta.url), 'utf8');
  const sentence = /^\*\*In one sentence:\*\* ([\s\S]*?)\n\n/m.exec(text)?.[1] ?? '';
  const rows = text.split('\n').filter((line) => line.startsWith('|'));
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}\n\n${rows.join('\n')}`;
}

export function pagesOf(facts: Facts, own: DocsConfig['pages'], language: Language): Page[] {
  const gaps = gapsOf(facts);
  const shipped = Object.entries(shippedPages).flatMap(([group, names]) =>
    names.map((name): Page => {
      const written = writtenIn(own[name]?.text, [language, 'en']);
      return {
        ...{ path: name === 'start' ? '' : name, group: group as 'begin' | 'rules', name },
        title: own[name]?.title || undefined,
        language: written?.language ?? 'en',
        markdown: () => fillTemplate(written?.text ?? templateOf(name), gaps),
      };
    }),
  );
  const names = new Set<string>(shipped.map(({ name }) => name!));
  const added = Object.entries(own).flatMap(([name, { title, text }]): Page[] => {
    const written = writtenIn(text, [language, 'en', ...frameLanguages]);
    if (names.has(name) || written === undefined) return [];
    return [
      {
        ...{ path: name, title: title || undefined, name: undefined, group: 'own', language: written.language },
        markdown: () => fillTemplate(written.text, gaps),
      },
    ];
  });
  return [...shipped, ...added, ...programPages(facts), ...modelPages(facts)];
}

const common = { name: undefined, language: 'en' } as const;

const programPages = (facts: Facts): Page[] =>
  servedPrograms(facts).flatMap(([, programs]) =>
    programs.map((program) => ({
      ...common,
      title: program.name,
      path: `clients/${program.id}`,
      group: 'clients',
      markdown: () => programPage(program, facts),
    })),
  );

const modelPages = (facts: Facts): Page[] =>
  facts.models.map((model) => ({
    ...common,
    title: model.displayName,
    path: modelPath(model.id),
    group: 'models',
    markdown: () => modelPage(model, facts),
  }));

/** In the first of these languages that there is. */
function writtenIn(
  text: DocsConfig['pages'][string]['text'] | undefined,
  languages: readonly Language[],
): { readonly text: string; readonly language: Language } | undefined {
  if (text === undefined) return undefined;
  if (typeof text === 'string') return { text, language: 'en' };
  const language = languages.find((one) => text[one] !== undefined);
  return language && { text: text[language]!, language };
}

function gapsOf(facts: Facts): Gaps {
  const model = exampleModel(facts, 'chat')?.id ?? 'MODEL';
  return {
    values: {
      gateway: facts.name,
      address: facts.address,
      model,
      keyheader: keyHeader(facts.carriers),
    },
    blocks: {
      models: () => modelTables(facts),
      pricenote: () => priceNote(facts),
      programs: () => programList(facts),
      addresses: () => addressTables(facts),
      getkey: () => whereKeysAre(facts),
      carriers: () => carrierList(facts),
      plans: () => planTable(facts),
      limits: limitTable,
      errorsamples: () => errorSamples(facts),
      errors: () => errorTable(facts),
      clientheaders: () => headerTable('client'),
      gatewayheaders: () => headerTable('gateway'),
      failedcalls: () => fromGuide('failed-calls'),
    },
  };
}

const whereKeysAre = ({ hasConsole, address }: Facts) =>
  hasConsole
    ? `Make a key in [the console](${address}/console/keys): it is shown once.`
    : 'You get a key from the people who run this gateway.';

const priceNote = ({ showsPrices, plan }: Facts) =>
  showsPrices
    ? `Prices are USD per million tokens unless a unit is named${plan === undefined ? '' : `, as accounts of the plan "${plan.replace(/[\\`*_[\]<>]/g, '\\$&')}" pay them`}. A call is charged exactly, for what it used.`
    : 'Prices are not public here.';
