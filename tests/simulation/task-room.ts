/** The real task store in a simulated process: its engine, its orders and its desk, on vendors, files and rows of the world. */
import type { Endpoint, Fact, Host } from '../../core/contract.ts';
import { type TaskDesk, upstreamHealth } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Catalog, call, database, deposits, type Files, providers } from '../../core/vocabulary.ts';
import type { Shape } from '../../plugins/task-store/contract.ts';
import { Engine } from '../../plugins/task-store/engine.ts';
import type { TaskRows } from '../../plugins/task-store/rows.ts';
import { callOf, takeOrder } from '../../plugins/task-store/submit.ts';
import { submission, type Taking } from '../../plugins/task-store/taking.ts';
import { openTaskDesk } from '../../plugins/task-store/task-desk.ts';
import type { Timing, Tools } from '../../plugins/task-store/tools.ts';
import type { Vendors } from '../../plugins/task-store/vendor.ts';
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
  readonly desk: TaskDesk;
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
  submitted: ({ id }) => ({ id }),
  told: ({ id, state }) => ({ id, state }),
};

export function openTaskRoom(host: Host, ground: TaskGround): TaskRoom {
  const { workers, ...given } = ground;
  const tools: Tools = {
    ...given,
    store: host.need(database),
    deposits: host.need(deposits),
    providers: host.need(providers),
    health: () => host.find(upstreamHealth),
    adapters: studioAdapters,
    withBytes: async (order) => order,
    clock: host.clock,
    random: host.random,
    log: host.log,
  };
  const engine = new Engine(tools, workers);
  const taking: Taking = { tools, engine, host, shape, synchronous: false, waitMs: 0, mostStreams: 0 };
  return {
    endpoint: {
      method: 'POST',
      path: '/v1/images/generations',
      operation: 'images',
      body: 'none',
      later: true,
      states: [call, submission] as Fact<unknown>[],
      open: (exchange) => exchange.set(call, callOf(exchange.get(submission), tools)),
      handle: (exchange) => takeOrder(exchange, taking),
    },
    desk: openTaskDesk(tools),
    start: () => host.every(turnIntervalMs, 'take due tasks', () => engine.turn()),
    stop: () => engine.stop(drainMs),
  };
}

/** Where results are kept: slow, now and then full for a moment, rarely unable to keep one at all. */
export function filesOf(schedule: Schedule, chance: Chance, trouble: { readonly oneIn: number }): Files {
  const nobodyAsks = async () => {
    throw new Error('nobody asks for files here');
  };
  return {
    ensureRoom: async () => {},
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
    find: nobodyAsks,
    read: nobodyAsks,
    answer: nobodyAsks,
    address: (fileId) => `http://127.0.0.1:9/${fileId}`,
    removeOfTask: async () => {},
    removeOfAccount: nobodyAsks,
  };
}
