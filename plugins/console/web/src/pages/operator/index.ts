/** The operator's pages, in the order of the sidebar. */
import './operator.css';
import type { Icon } from '@tabler/icons-react';
import {
  IconActivity,
  IconApi,
  IconArrowsExchange,
  IconCoins,
  IconFileSettings,
  IconHistory,
  IconPhotoCog,
  IconPlugConnected,
  IconServer,
  IconStack2,
  IconTag,
  IconTicket,
  IconUsers,
  IconUsersGroup,
} from '@tabler/icons-react';
import i18next from 'i18next';
import type { Feature } from '../../api/types.ts';
import type { PageEntry } from '../page-entry.ts';

type Name = keyof typeof import('../../texts/en/operator.ts').default.nav;

function page(name: Name, icon: Icon, needs: readonly Feature[], load: PageEntry['load']): PageEntry {
  return { path: `/admin/${name}`, load, link: { text: () => i18next.t(`operator.nav.${name}`), icon }, needs };
}

export const operatorPages: readonly PageEntry[] = [
  page('monitor', IconActivity, ['requests'], () => import('./monitor/monitor.tsx')),
  page('requests', IconArrowsExchange, ['requests'], () => import('./requests/requests.tsx')),
  page('upstreams', IconPlugConnected, ['upstreams'], () => import('./upstreams/upstreams.tsx')),
  page('accounts', IconUsersGroup, ['accounts'], () => import('./accounts/accounts.tsx')),
  page('people', IconUsers, [], () => import('./people/people.tsx')),
  page('plans', IconStack2, ['plans'], () => import('./plans/plans.tsx')),
  page('codes', IconTicket, ['codes'], () => import('./codes/codes.tsx')),
  page('prices', IconTag, ['prices'], () => import('./prices/prices.tsx')),
  page('tasks', IconPhotoCog, ['tasks'], () => import('./tasks/tasks.tsx')),
  page('money', IconCoins, ['money'], () => import('./money/money.tsx')),
  page('nodes', IconServer, ['money'], () => import('./nodes/nodes.tsx')),
  page('config', IconFileSettings, ['config'], () => import('./config/config.tsx')),
  page('audit', IconHistory, [], () => import('./audit/audit.tsx')),
  page('tokens', IconApi, [], () => import('./tokens/tokens.tsx')),
  { path: '/admin/requests/$id', load: () => import('./requests/request-page.tsx') },
  { path: '/admin/accounts/$id', load: () => import('./accounts/account.tsx') },
];
