/** Notes about models: a table of its own, a command that writes it, an endpoint that shows it, and a page of the console. */
import { definePlugin, GatewayError, type PluginInstance, z } from 'model-gateway';
import { adminPages, adminRoute, database } from 'model-gateway/domain';
import { pg } from 'model-gateway/kit';

export default definePlugin({
  name: 'notes',
  config: z.strictObject({ longest: z.number().int().positive().default(500).describe('Most characters of a note.') }),
  services: { requires: [database] },
  extends: [adminPages],
  async setup(host, { longest }): Promise<PluginInstance> {
    const store = host.get(database);
    await store.migrate('notes', new URL('./migrations/', import.meta.url));
    const notes = pg
      .pgSchema(store.schema)
      .table('notes', { model: pg.text().primaryKey(), note: pg.text().notNull() });
    const list = () => store.orm.select({ model: notes.model, note: notes.note }).from(notes).orderBy(notes.model);
    async function write(model: string, note: string) {
      const row = { model, note };
      if (note.length > longest)
        throw new GatewayError('invalid_request', `The note is longer than ${longest} characters.`, { field: 'note' });
      await store.orm.insert(notes).values(row).onConflictDoUpdate({ target: notes.model, set: row });
      return row;
    }
    host.extend(adminPages, {
      name: 'notes',
      title: { en: 'Notes', zh: '笔记' },
      intro: { en: 'What operators have noted about models.', zh: '运营人员对模型的备注。' },
      group: 'system',
      access: 'read',
      module: new URL('./page.js', import.meta.url),
      routes: [
        {
          method: 'GET',
          path: '',
          summary: 'Notes about models',
          access: 'read',
          answer: z.object({ rows: z.array(z.object({ model: z.string(), note: z.string() })) }),
          handle: async () => ({ rows: await list() }),
        },
        adminRoute({
          method: 'POST',
          path: '',
          summary: 'Note something about a model',
          access: 'act',
          body: z.strictObject({ model: z.string().min(1).max(200), note: z.string().min(1) }),
          subject: ({ body }) => body.model,
          handle: ({ body }) => write(body.model, body.note),
        }),
      ],
    });
    return {
      commandLine: {
        commands: [
          {
            name: 'notes set',
            summary: 'note something about a model',
            arguments: ['<model>', '<note>'],
            async run({ model, note }) {
              const row = await write(String(model), String(note));
              return { json: row, text: `noted about ${row.model}` };
            },
          },
        ],
      },
      endpoints: [
        {
          method: 'GET',
          path: '/v1/notes',
          operation: 'notes',
          body: 'none',
          keyless: true,
          async handle() {
            const body = JSON.stringify({ data: await list() });
            return { status: 200, headers: { 'content-type': 'application/json' }, body };
          },
        },
      ],
    };
  },
});
