/** The operator's pages, in the order of the sidebar. */
import './operator.css';
import {
  type Icon,
  IconActivity,
  IconApi,
  IconArrowsExchange,
  IconBell,
  IconCoins,
  IconFile,
  IconFileSettings,
  IconHistory,
  IconLayoutDashboard,
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

type Group = NonNullable<NonNullable<PageEntry['link']>['group']>;

const page =
  (group: Group) =>
  (name: Name, icon: Icon, needs: readonly Feature[], load: PageEntry['load']): PageEntry => ({
    path: `/admin/${name}`,
    load,
    link: { text: () => i18next.t(`operator.nav.${name}`), icon, group },
    needs,
  });
const [traffic, customers, sales, system] = [page('traffic'), page('customers'), page('sales'), page('system')];

export const operatorPages: readonly PageEntry[] = [
  traffic('overview', IconLayoutDashboard, [], () => import('./overview/overview.tsx')),
  traffic('monitor', IconActivity, ['requests'], () => import('./monitor/monitor.tsx')),
  traffic('requests', IconArrowsExchange, ['requests'], () => import('./requests/requests.tsx')),
  traffic('upstreams', IconPlugConnected, ['upstreams'], () => import('./upstreams/upstreams.tsx')),
  traffic('alerts', IconBell, ['alerts'], () => import('./alerts/alerts.tsx')),
  traffic('tasks', IconPhotoCog, ['tasks'], () => import('./tasks/tasks.tsx')),
  traffic('files', IconFile, ['files'], () => import('./files/files.tsx')),
  traffic('batches', IconStack2, ['batches'], () => import('./batches/batches.tsx')),
  customers('accounts', IconUsersGroup, ['accounts'], () => import('./accounts/accounts.tsx')),
  customers('people', IconUsers, [], () => import('./people/people.tsx')),
  sales('plans', IconStack2, ['plans'], () => import('./plans/plans.tsx')),
  sales('codes', IconTicket, ['codes'], () => import('./codes/codes.tsx')),
  sales('prices', IconTag, ['prices'], () => import('./prices/prices.tsx')),
  sales('money', IconCoins, ['money'], () => import('./money/money.tsx')),
  system('nodes', IconServer, ['money'], () => import('./nodes/nodes.tsx')),
  system('config', IconFileSettings, ['config'], () => import('./config/config.tsx')),
  system('audit', IconHistory, [], () => import('./audit/audit.tsx')),
  system('tokens', IconApi, [], () => import('./tokens/tokens.tsx')),
  { path: '/admin/requests/$id', load: () => import('./requests/request-page.tsx') },
  { path: '/admin/accounts/$id', load: () => import('./accounts/account.tsx') },
  { path: '/admin/$page', load: () => import('../plugin-page/plugin-page.tsx') },
];
