/** The client's pages, in the order of the sidebar. */
import {
  IconChartBar,
  IconCpu,
  IconFile,
  IconHome,
  IconKey,
  IconMessage2,
  IconPhoto,
  IconStack2,
  IconWallet,
} from '@tabler/icons-react';
import i18next from 'i18next';
import type { PageEntry } from '../page-entry.ts';

export const clientPages: readonly PageEntry[] = [
  { path: '/', load: () => import('./home.tsx'), link: { text: () => i18next.t('client.home.title'), icon: IconHome } },
  {
    path: '/keys',
    load: () => import('./keys.tsx'),
    link: { text: () => i18next.t('shell.word.keys'), icon: IconKey },
    needs: ['accounts'],
  },
  { path: '/projects', load: () => import('./projects.tsx'), needs: ['accounts'] },
  {
    path: '/usage',
    load: () => import('./usage.tsx'),
    link: { text: () => i18next.t('client.usage.title'), icon: IconChartBar },
    needs: ['requests'],
  },
  {
    path: '/models',
    load: () => import('./models.tsx'),
    link: { text: () => i18next.t('shell.word.models'), icon: IconCpu },
  },
  {
    path: '/tasks',
    load: () => import('./tasks.tsx'),
    link: { text: () => i18next.t('client.tasks.title'), icon: IconPhoto },
    needs: ['tasks'],
  },
  {
    path: '/files',
    load: () => import('./files.tsx'),
    link: { text: () => i18next.t('client.filesTitle'), icon: IconFile },
    needs: ['files'],
  },
  {
    path: '/batches',
    load: () => import('./batches/batches.tsx'),
    link: { text: () => i18next.t('client.batchesTitle'), icon: IconStack2 },
    needs: ['files', 'batches'],
  },
  {
    path: '/wallet',
    load: () => import('./wallet.tsx'),
    link: { text: () => i18next.t('client.wallet.title'), icon: IconWallet },
    needs: ['wallet'],
  },
  {
    path: '/playground',
    load: () => import('./playground/playground.tsx'),
    link: { text: () => i18next.t('client.playgroundTitle'), icon: IconMessage2 },
  },
  { path: '/connect', load: () => import('./connect.tsx'), needs: ['accounts'] },
  { path: '/members', load: () => import('./members/members.tsx') },
  { path: '/profile', load: () => import('./profile.tsx') },
  { path: '/pages/$page', load: () => import('../plugin-page/plugin-page.tsx') },
];
