/** The client's pages, in the order of the sidebar. */
import { IconHome } from '@tabler/icons-react';
import i18next from 'i18next';
import type { PageEntry } from '../page-entry.ts';

export const clientPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./home.tsx'), link: { text: () => i18next.t('client.home.title'), icon: IconHome } },
];
