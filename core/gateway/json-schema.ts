/** The JSON schema of gateway files, made of the plugins' own schemas, for editors. */

import type { Plugin } from '../contract/contract.ts';
import { z } from '../contract/schema.ts';
import { gatewaySchema } from './config.ts';
import { builtInNames, loadPlugin } from './registry.ts';

/** JSON Schema (draft 2020-12) of what an operator may write; `listed`: plugins beside the built-in ones. */
export async function configSchema(listed: readonly Plugin[] = []): Promise<object> {
  const definitions: Record<string, unknown> = {};
  /** Definitions that a section uses more than once move to the top, with a unique name. */
  const section = (name: string, schema: z.ZodType) => {
    const { $schema: _draft, $defs = {}, ...own } = definedIn(name, toJson(schema));
    for (const [one, definition] of Object.entries($defs as object)) definitions[`${name}-${one}`] = definition;
    return own;
  };
  const properties: Record<string, unknown> = {
    include: {
      description:
        'Files over which this file is laid: mappings merge, scalars and lists are replaced. Set it to build on a shipped file and write only what differs.',
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
    },
    ...(section('gateway', gatewaySchema)['properties'] as object),
  };
  const builtIn = await Promise.all(builtInNames().map((name) => loadPlugin(name, '')));
  const others = listed.filter(({ name }) => !builtIn.some((plugin) => plugin.name === name));
  for (const { name, config } of [...builtIn, ...others]) {
    const own = section(name, config as unknown as z.ZodType);
    properties[name] = { description: `Section of the plugin "${name}".`, ...own };
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A gateway',
    type: 'object',
    properties,
    additionalProperties: false,
    $defs: definitions,
  };
}

function definedIn(name: string, schema: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', `"#/$defs/${name}-`)) as Record<string, unknown>;
}

function toJson(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'ref' }) as Record<string, unknown>;
}
