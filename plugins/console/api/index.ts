/** The whole API as one app, and its type for typed clients. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { accountChangeRoutes } from './admin-account-changes.ts';
import { accountRoutes } from './admin-accounts.ts';
import { bodyRoutes, recordingRoutes } from './admin-bodies.ts';
import { codeRoutes } from './admin-codes.ts';
import { configRoutes } from './admin-config.ts';
import { auditRoutes, moneyRoutes, tokenRoutes } from './admin-house.ts';
import { peopleRoutes } from './admin-people.ts';
import { priceRoutes } from './admin-prices.ts';
import { operatorTaskRoutes } from './admin-tasks.ts';
import { requestRoutes, trafficRoutes } from './admin-traffic.ts';
import { upstreamRoutes } from './admin-upstreams.ts';
import { documentOf } from './document.ts';
import { guard, renderError } from './guard.ts';
import { homeRoutes } from './home.ts';
import { keyRoutes } from './keys.ts';
import { meRoutes } from './me.ts';
import { modelRoutes } from './models.ts';
import { type Console, router, type Setting } from './router.ts';
import { taskRoutes } from './tasks.ts';
import { usageRoutes } from './usage.ts';
import { paymentRoutes, walletRoutes } from './wallet.ts';

function routes(hall: Console, app: OpenAPIHono<Setting>) {
  return app
    .route('/', meRoutes(hall))
    .route('/', homeRoutes(hall))
    .route('/', keyRoutes(hall))
    .route('/', usageRoutes(hall))
    .route('/', modelRoutes(hall))
    .route('/', taskRoutes(hall))
    .route('/', walletRoutes(hall))
    .route('/', paymentRoutes(hall))
    .route('/', trafficRoutes(hall))
    .route('/', requestRoutes(hall))
    .route('/', bodyRoutes(hall))
    .route('/', recordingRoutes(hall))
    .route('/', upstreamRoutes(hall))
    .route('/', accountRoutes(hall))
    .route('/', accountChangeRoutes(hall))
    .route('/', peopleRoutes(hall))
    .route('/', codeRoutes(hall))
    .route('/', priceRoutes(hall))
    .route('/', operatorTaskRoutes(hall))
    .route('/', moneyRoutes(hall))
    .route('/', auditRoutes(hall))
    .route('/', tokenRoutes(hall))
    .route('/', configRoutes(hall));
}

/** `hc<Api>('/console/api')` of hono/client is a typed client of it. */
export type Api = ReturnType<typeof routes>;

/** The API below `/console/api`. */
export function createApi(hall: Console): Api {
  const app = router();
  app.onError(renderError);
  app.use('*', guard(hall));
  const api = routes(hall, app);
  api.get('/openapi.json', (ask) => ask.json(documentOf(api, hall.settings.name)));
  return api;
}
