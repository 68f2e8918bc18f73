/** The real task store in a simulated process: its engine, its orders and its administration, on vendors, files and rows of the world. */
import type { ContextKey, Endpoint, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { TaskAdmin } from '../../plugins/common/domain/admin/tasks.ts';
import { upstreamHealth } from '../../plugins/common/domain/admin/upstreams.ts';
import { call } from '../../plugins/common/domain/calls.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { authorizations } from '../../plugins/common/domain/ledger.ts';
import type { Catalog } from '../../plugins/common/domain/models.ts';
import type { Files } from '../../plugins/common/domain/stored-files.ts';
import { providers } from '../../plugins/common/domain/upstreams.ts';
import { openTaskAdmin } from '../../plugins/task-store/admin/task-admin.ts';
import type { Shape } from '../../plugins/task-store/contract.ts';
import type { Timing, Tools } from '../../plugins/task-store/engine/dependencies.ts';
import { Engine } from '../../plugins/task-store/engine/engine.ts';
import type { TaskRows } from '../../plugins/task-store/engine/rows.ts';
import type { Vendors } from '../../plugins/task-store/engine/vendor.ts';
import { callOf, takeOrder } from '../../plugins/task-store/orders/submit.ts';
import { type OrderContext, submission } from '../../plugins/task-store/orders/waiting.ts';
import type { Chance } from './chance.ts';
import type { Schedule } from './schedule.ts';
import { studioAdapters } from './studio.ts';

/** What a process's tasks stand on. */
export interface TaskGround {
  readonly rows: TaskRows;
  readonly vendors: Vendors;
  readonly files: Files;
  readonly catalog: Catalog;
  readonly timing: Timing;
  readonly workers: number;
}

export interface TaskRoom {
  readonly endpoint: Endpoint;
  readonly admin: TaskAdmin;
  start(): void;
  stop(): Promise<void>;
}

const turnIntervalMs = 200;
const drainMs = 300;

/** Orders are stated whole here, and the answer is the task's id. */
const shape: Shape = {
  read: () => {
    throw new Error('no order is read here');
  },
  deleted: ({ id }) => ({ id }),
  submitted: ({ id }) => ({ id }),
  render: ({ id, state }) => ({ id, state }),
};

export function openTaskRoom(host: Host, ground: TaskGround): TaskRoom {
  const { workers, ...given } = ground;
  const tools: Tools = {
    ...given,
    store: host.get(database),
    authorizations: host.get(authorizations),
    providers: host.get(providers),
    health: () => host.find(upstreamHealth),
    adapters: studioAdapters,
    withBytes: async (order) => order,
    clock: host.clock,
    random: host.random,
    log: host.log,
  };
  const engine = new Engine(tools, workers);
  const taking: OrderContext = {
    tools,
    engine,
    host,
    shape,
    synchronous: false,
    waitMs: 0,
    tasksPath: '/v1/tasks',
    mostStreams: 0,
  };
  return {
    endpoint: {
      method: 'POST',
      path: '/v1/images/generations',
      operation: 'images',
      body: 'none',
      deferred: true,
      setsOnOpen: [call, submission] as ContextKey<unknown>[],
      open: (exchange) => exchange.set(call, callOf(exchange.get(submission), tools)),
      handle: (exchange) => takeOrder(exchange, taking),
    },
    admin: openTaskAdmin(tools),
    start: () => host.every(turnIntervalMs, 'take due tasks', () => engine.turn()),
    stop: () => engine.stop(drainMs),
  };
}

/** Where results are kept: slow, now and then full for a moment, rarely unable to keep one at all. */
export function filesOf(schedule: Schedule, chance: Chance, trouble: { readonly oneIn: number }): Files {
  const isUnread = async () => {
    throw new Error('no one asks for files here');
  };
  return {
    ensureRoom: async () => {},
    expiries: async () => new Map(),
    keep: (_content, kind, { taskId, number }) => {
      const life = schedule.current;
      return new Promise((resolve, reject) => {
        schedule.after(chance.delay(10), life, 'keep a file', () => {
          if (trouble.oneIn > 0 && chance.oneIn(trouble.oneIn)) {
            const shouldRetry = !chance.oneIn(4);
            reject(new GatewayError('overloaded', 'It could not be kept.', { shouldRetry }));
          } else resolve({ id: `${taskId}-${number}`, mediaType: `${kind}/any`, bytes: 5, expiresAt: 0 });
        });
      });
    },
    find: isUnread,
    read: isUnread,
    answer: isUnread,
    address: (fileId) => `http://127.0.0.1:9/${fileId}`,
    removeFilesOfTask: async () => {},
    removeOfAccount: isUnread,
  };
}
