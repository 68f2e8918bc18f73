/** Which address shows which page, and who must be signed in for it. */
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { ApiError, get } from './api/client.ts';
import { has, meQuery, queries, seesOperatorPages } from './api/session.ts';
import type { Me } from './api/types.ts';
import { clientPages } from './pages/client/index.ts';
import { entryPages } from './pages/entry/index.ts';
import { operatorPages } from './pages/operator/index.ts';
import type { PageEntry } from './pages/page-entry.ts';
import { Failure, NotFound } from './parts/failure.tsx';
import { readSearch, writeSearch } from './parts/search-state.ts';
import { loadBanner, Shell } from './parts/shell.tsx';
import { shown } from './parts/sidebar.tsx';
import { Waiting } from './parts/states.tsx';
import { speakToOperators } from './texts/index.ts';

const root = createRootRouteWithContext<object>()({ component: Outlet, notFoundComponent: NotFound });

const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  component: Shell,
  beforeLoad: async ({ location }) => {
    try {
      const me = await queries.ensureQueryData(meQuery);
      if (seesOperatorPages(me)) await Promise.all([speakToOperators(), has(me, 'alerts') && loadBanner()]);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      const next = location.href === '/' ? {} : { next: location.href };
      throw redirect({ to: '/sign-in', search: next });
    }
  },
});

/** The first page: home for people with an account, else the first operator page. */
function firstPage(me: Me): string {
  if (me.account !== null) return '/';
  return shown(operatorPages, me)[0]?.path ?? '/profile';
}

/** Without a connection a page says so. The router alone would load the address again, to the browser's own error. */
const fetched = (load: PageEntry['load']) => () =>
  load().catch(async (error: unknown) => {
    await get('/info');
    throw error;
  });

const insideRoutes = [...clientPages, ...operatorPages].map((page) =>
  createRoute({
    getParentRoute: () => inside,
    path: page.path,
    component: lazyRouteComponent(fetched(page.load)),
    ...(page.path === '/' ? { beforeLoad: leaveForFirstPage } : {}),
  }),
);
/** An unknown address, with the frame around it. */
const unknown = createRoute({ getParentRoute: () => inside, path: '$', component: NotFound });
const entryRoutes = entryPages.map((page: PageEntry) =>
  createRoute({ getParentRoute: () => root, path: page.path, component: lazyRouteComponent(fetched(page.load)) }),
);

async function leaveForFirstPage() {
  const first = firstPage(await queries.ensureQueryData(meQuery));
  if (first !== '/') throw redirect({ to: first });
}

export const router = createRouter({
  routeTree: root.addChildren([inside.addChildren([...insideRoutes, unknown]), ...entryRoutes]),
  basepath: '/console',
  context: {},
  parseSearch: readSearch,
  stringifySearch: writeSearch,
  defaultPendingComponent: () => <Waiting height={400} />,
  defaultPendingMs: 200,
  defaultErrorComponent: Failure,
  scrollRestoration: true,
});
