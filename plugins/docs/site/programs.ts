/** Pages of client programs and libraries, from the data that the console and the command `connect` use too. Pure. */
import {
  blocksOf,
  type ClientProgram,
  clientPrograms,
  connectCommand,
  type Filling,
  linksOf,
} from '../../../core/tools/client-programs.ts';
import groups from '../programs.json' with { type: 'json' };
import { exampleModel, type Facts, type ModelFacts, smallModel } from './facts.ts';
import { code, fenced, plain } from './markdown.ts';

export interface Program {
  readonly id: string;
  readonly name: string;
  readonly program: ClientProgram;
}

const named = (id: string, program: ClientProgram): Program => {
  const name = program.makes === undefined ? program.name : `${program.name}: ${program.makes}`;
  return { id, name, program };
};

/** By group, each program once; what no group names stands at the end. */
export function programGroups(): readonly (readonly [title: string, programs: readonly Program[]])[] {
  const listed = Object.entries(groups).map(([title, ids]) => {
    const programs = ids.flatMap((id) => {
      const program = clientPrograms.get(id);
      return program === undefined ? [] : [named(id, program)];
    });
    return [title, programs] as const;
  });
  const known = new Set(Object.values(groups).flat());
  const others = [...clientPrograms].flatMap(([id, program]) => (known.has(id) ? [] : [named(id, program)]));
  return others.length === 0 ? listed : [...listed, ['Others', others]];
}

/** Without programs for models that this gateway does not sell. */
export const servedPrograms = (facts: Facts): ReturnType<typeof programGroups> =>
  programGroups().flatMap(([title, programs]) => {
    const served = programs.filter(({ program }) => modelFor(program, facts) !== undefined);
    return served.length === 0 ? [] : [[title, served] as const];
  });

export function programList(facts: Facts): string {
  return servedPrograms(facts)
    .map(([title, programs]) => {
      const items = programs.map(({ id, name }) => `- [${plain(name)}](/docs/clients/${id})`);
      return `## ${plain(title)}\n\n${items.join('\n')}`;
    })
    .join('\n\n');
}

/** undefined: the gateway sells no model of its kind. */
export function programPage({ id, name, program }: Program, facts: Facts): string | undefined {
  const model = modelFor(program, facts);
  if (model === undefined) return undefined;
  const named = facts.showsModels ? model.id : undefined;
  const filling = fillingOf(model, facts);
  const blocks = blocksOf(program, filling).map(({ text, language, saveAs }) => fenced(text, language, saveAs));
  const links = linksOf(program, filling).map(([app, address]) => `- [${plain(app)}](<${address}>)`);
  const isConnectable = program.files !== undefined && program.by_hand !== true;
  return [
    `# ${plain(name)}`,
    named === undefined
      ? 'Instead of `YOUR_KEY` write your key, and instead of `MODEL` a model of `GET /v1/models`.'
      : `With ${code(named)}; [other models](/docs/models) work the same. Instead of \`YOUR_KEY\` write your key.`,
    ...(isConnectable
      ? [
          'One command writes the settings, shows what it changes, and can take it back:',
          fenced(connectCommand(id, facts.address, named), 'sh'),
          'It needs Node 20 or later, and shows a code with which you allow a key, unless `GATEWAY_KEY` holds one. In PowerShell:',
          fenced(connectCommand(id, facts.address, named, 'powershell'), 'powershell'),
          '## By hand',
        ]
      : []),
    ...blocks,
    ...(program.unattended === undefined
      ? []
      : ['In a script, where it cannot ask whether you trust the folder:', fenced(program.unattended, 'sh')]),
    ...(links.length === 0 ? [] : [`Links that open the program with everything filled in:\n\n${links.join('\n')}`]),
    trouble,
  ].join('\n\n');
}

type Named = Pick<ModelFacts, 'id' | 'ownedBy' | 'sheet' | 'contextTokens' | 'maxOutputTokens'>;

/** Stands for one that a stranger is not shown. */
const hidden: Named = {
  ...{ id: 'MODEL', ownedBy: '', sheet: undefined, contextTokens: undefined, maxOutputTokens: undefined },
};

function modelFor({ makes }: ClientProgram, facts: Facts): Named | undefined {
  return facts.showsModels ? exampleModel(facts, makes === 'images' ? 'image' : 'chat') : hidden;
}

function fillingOf(model: Named, facts: Facts): Filling {
  const small = smallModel(facts, model);
  return {
    base: facts.address,
    key: 'YOUR_KEY',
    model: model.id,
    // Where a program keeps several gateways, in files of several formats.
    name: facts.name.replace(/[^\p{L}\p{N} ._-]/gu, ' ').trim() || 'gateway',
    small: small.id,
    context: model.contextTokens,
    output: model.maxOutputTokens,
    smallContext: small.contextTokens,
    smallOutput: small.maxOutputTokens,
  };
}

const trouble = `## If it does not work

- 401: the key is not sent, or is another one. [How keys are sent](/docs/protocols).
- 404 with \`model\` in the message: the program asks for a model that is [not sold here](/docs/models), perhaps for a side job of its own.
- 402 or 429: [what each limit means](/docs/limits).
- Anything else: [errors with their cure](/docs/errors).`;
