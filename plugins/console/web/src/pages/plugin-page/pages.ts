/** The lines of the sidebar and of the search for pages that plugins add. */
import { IconPuzzle } from '@tabler/icons-react';
import type { Me } from '../../api/types.ts';
import type { PageEntry } from '../page-entry.ts';
import { inLanguage } from './own-text.ts';

/** The pages that plugins add for operators, or for the own account, as sidebar and search show them. */
export const pluginPages = (me: Me, whose: 'operators' | 'own'): readonly PageEntry[] =>
  me.pages
    .filter(({ group }) => (group === null) === (whose === 'own'))
    .map(({ path, title, group }) => ({
      path,
      load: () => import('./plugin-page.tsx'),
      link: { text: () => inLanguage(title), icon: IconPuzzle, ...(group === null ? {} : { group }) },
    }));
