/** The operator's pages, in the order of the sidebar. */
import './operator.css';
import { IconActivity, IconArrowsExchange, IconPhotoCog, IconPlugConnected } from '@tabler/icons-react';
import i18next from 'i18next';
import type { PageEntry } from '../page-entry.ts';

export const operatorPages: readonly PageEntry[] = [
  {
    path: '/admin/monitor',
    load: () => import('./monitor/monitor.tsx'),
    link: { text: () => i18next.t('operator.nav.monitor'), icon: IconActivity },
    needs: ['requests'],
  },
  {
    path: '/admin/requests',
    load: () => import('./requests/requests.tsx'),
    link: { text: () => i18next.t('operator.nav.requests'), icon: IconArrowsExchange },
    needs: ['requests'],
  },
  {
    path: '/admin/upstreams',
    load: () => import('./upstreams/upstreams.tsx'),
    link: { text: () => i18next.t('operator.nav.upstreams'), icon: IconPlugConnected },
    needs: ['upstreams'],
  },
  {
    path: '/admin/tasks',
    load: () => import('./tasks/tasks.tsx'),
    link: { text: () => i18next.t('operator.nav.tasks'), icon: IconPhotoCog },
    needs: ['tasks'],
  },
  { path: '/admin/requests/$id', load: () => import('./requests/request-page.tsx') },
];
