/** The thread in which drivers run: takes orders, gives reports. */
import { parentPort } from 'node:worker_threads';
import { openLocalDriver } from './driver.ts';
import type { Driver, Rows } from './pool.ts';
import type { Order, Report } from './thread.ts';

const port = parentPort!;
const drivers = new Map<number, Driver>();
const report = (message: Report) => port.postMessage(message);

port.on('message', (order: Order) => {
  if (order.kind === 'open') {
    drivers.set(
      order.driver,
      openLocalDriver(order.options, () => report({ kind: 'closed', driver: order.driver })),
    );
    return;
  }
  const driver = drivers.get(order.driver) ?? closedDriver;
  if (order.kind === 'end') {
    drivers.delete(order.driver);
    answer(
      order.call,
      driver.end(order.timeoutSeconds).then(() => []),
    );
  } else {
    answer(order.call, driver.run(order.statement));
  }
});

const closedDriver: Driver = {
  run: () => Promise.reject(Object.assign(new Error('The driver was closed.'), { code: 'CONNECTION_CLOSED' })),
  end: async () => undefined,
};

function answer(call: number, work: PromiseLike<Rows>): void {
  work.then(
    (rows) => report({ kind: 'done', call, rows: [...rows], command: (rows as { command?: string }).command }),
    (error: Error) => report({ kind: 'failed', call, error: plainError(error) }),
  );
}

/** An error's own members that are text or numbers, such as the driver's code, detail and constraint. */
function plainError(error: Error): Record<string, unknown> {
  const members: Record<string, unknown> = { name: error.name, message: error.message, stack: error.stack };
  for (const [name, value] of Object.entries(error)) {
    if (typeof value === 'string' || typeof value === 'number') members[name] = value;
  }
  return members;
}
