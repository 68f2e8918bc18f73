/** The JSON schema of gateway files, made of the plugins' own schemas, for editors. */
import { gatewaySchema } from './config.ts';
import { builtInNames, loadPlugin } from './registry.ts';
import { z } from './schema.ts';

/** JSON Schema (draft 2020-12) of what an operator may write. */
export async function configSchema(): Promise<object> {
  const properties: Record<string, unknown> = {
    include: {
      description: 'Files whose members this file is laid over.',
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
    },
    ...(toJson(gatewaySchema)['properties'] as object),
  };
  for (const name of builtInNames()) {
    const plugin = await loadPlugin(name, '');
    const { $schema: _draft, ...section } = toJson(plugin.config as unknown as z.ZodType);
    properties[name] = { description: `Section of the plugin "${name}".`, ...section };
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A gateway',
    type: 'object',
    properties,
    additionalProperties: false,
  };
}

function toJson(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
}
