/** A plugin with pages that do not work, for the test of the console's manners. */
import { definePlugin } from '../../../core/contract/contract.ts';
import { z } from '../../../core/contract/schema.ts';
import { adminPages } from '../../../plugins/common/domain/admin/admin-pages.ts';

export default definePlugin({
  name: 'broken-pages',
  config: z.strictObject({}),
  extends: [adminPages],
  setup(host) {
    for (const name of ['no-mount', 'throws', 'no-module'] as const)
      host.extend(adminPages, {
        name,
        title: { en: `Page ${name}` },
        group: 'system',
        access: 'act',
        module: new URL(`./${name}.${name === 'no-module' ? 'txt' : 'js'}`, import.meta.url),
      });
    return {};
  },
});
