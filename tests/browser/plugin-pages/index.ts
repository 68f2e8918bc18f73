/** A plugin with pages that do not work, and one for clients that does, for the test of the console's manners. */
import { definePlugin } from '../../../core/contract/contract.ts';
import { z } from '../../../core/contract/schema.ts';
import { adminPages, clientPages } from '../../../plugins/common/domain/admin/admin-pages.ts';

export default definePlugin({
  name: 'broken-pages',
  config: z.strictObject({}),
  extends: [adminPages, clientPages],
  setup(host) {
    for (const name of ['no-mount', 'throws', 'no-module'] as const)
      host.extend(adminPages, {
        name,
        title: { en: `Page ${name}` },
        group: 'system',
        access: 'act',
        module: new URL(`./${name}.${name === 'no-module' ? 'txt' : 'js'}`, import.meta.url),
      });
    host.extend(clientPages, {
      name: 'own',
      title: { en: 'Own page' },
      module: new URL('./own.js', import.meta.url),
      routes: [
        {
          method: 'GET',
          path: '',
          summary: 'The account',
          handle: ({ accountId }) => ({ text: `<b>${accountId}</b>` }),
        },
      ],
    });
    return {};
  },
});
