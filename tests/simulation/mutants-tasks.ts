/** Faults in how tasks are claimed, sent, ended and paid. */

import { objectOf } from '../../core/json/json.ts';
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { Attempt } from '../../plugins/common/domain/calls.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { StoredTask, TaskRows } from '../../plugins/task-store/engine/rows.ts';
import type { Mutant } from './mutants.ts';
import { inside, redefine } from './mutants-tools.ts';

/** Changes the record by which a deposit ends. */
const posting = (edit: (record: EndRecord) => EndRecord) =>
  inside(({ tables }) => {
    const { authorizations: deposits } = tables;
    const post: typeof deposits.post = (record) => deposits.post(edit(record));
    redefine(tables, 'authorizations', { value: { ...deposits, post } });
  });

/** What a worker reads of the tasks that it takes. */
const report =
  (edit: (task: StoredTask) => StoredTask) =>
  (rows: TaskRows): TaskRows => ({
    ...rows,
    take: async (...given) => (await rows.take(...given)).map(edit),
  });

const asUnsent = (attempt: Attempt): Attempt =>
  attempt.result === 'running' ? { ...attempt, result: 'not_sent' } : attempt;

export const taskMutants: Readonly<Record<string, Mutant>> = {
  'task-claimed-twice': {
    summary: 'a claim takes a task although another’s lease holds',
    taskTable: (table) => {
      table.isFree = () => true;
    },
  },
  'task-moved-blindly': {
    summary: 'a move looks neither at the state that a task has come to nor at whose it is',
    taskTable: (table) => {
      table.mayWrite = () => true;
    },
  },
  'task-sent-again': {
    summary: 'an order whose worker was lost is sent again',
    taskRows: report((task) => ({ ...task, attempts: task.attempts.map(asUnsent) })),
  },
  'task-sent-unwritten': {
    summary: 'an order leaves before its departure is in the row',
    taskRows: (rows) => ({
      ...rows,
      move: async (id, from, to, changes) => {
        const moved = rows.move(id, from, to, changes);
        if (to.keepLease !== true) return moved;
        moved.catch(() => {});
        return true;
      },
    }),
  },
  'task-end-of-its-own': {
    summary: 'a task’s final state is committed by itself, before its money',
    taskTable: (table) => {
      const end = table.end.bind(table);
      table.end = (_transaction, ...given) => {
        const alone = { undo: [], commits: [] as (() => void)[] };
        const ended = end(alone, ...given);
        for (const report of alone.commits) report();
        return ended;
      };
    },
  },
  'task-end-twice': {
    summary: 'an end is written again over an end',
    taskTable: (table) => {
      const end = table.end.bind(table);
      table.end = (transaction, ...given) => end(transaction, ...given) && (end(transaction, ...given) || true);
      const mayWrite = table.mayWrite.bind(table);
      table.mayWrite = (row, from) => row.dueAt === undefined || mayWrite(row, from);
    },
  },
  'deposit-back-and-paid': {
    summary: 'a deposit that ends gives its money back twice',
    store: inside(({ tables }) => {
      const { authorizations: deposits } = tables;
      const remove: typeof deposits.remove = (id, held) => deposits.remove(id, money(2n * held));
      redefine(tables, 'authorizations', { value: { ...deposits, remove } });
    }),
  },
  'deposit-forgets-absorbed': {
    summary: 'what vendors bill for tasks that came to nothing is no one’s',
    store: posting((record) => (record.kind === 'VOID' ? { ...record, absorbed: undefined } : record)),
  },
  'broken-call-forgotten': {
    summary: 'of an order of several calls, what those may have cost that broke off is no one’s',
    store: posting((record) => (record.kind === 'SETTLE' ? { ...record, absorbed: undefined } : record)),
  },
  'task-taken-back-late': {
    summary: 'a task is cancelled although its vendor has begun to make it',
    taskVendors: (vendors) => ({
      ...vendors,
      call: async (wanted, ...given) => {
        const answer = await vendors.call(wanted, ...given);
        if (wanted.method === 'DELETE') return { ...answer, status: 200 };
        // The vendor is asked before it is asked to stop.
        return objectOf(answer.json)?.['state'] === 'running' ? { ...answer, json: { state: 'queued' } } : answer;
      },
    }),
  },
  'task-untold': {
    summary: 'now and then no one is put down to be notified of an end',
    taskTable: (table) => {
      const end = table.end.bind(table);
      let count = 0;
      table.end = (transaction, { id, callbackUrl }, ...given) => {
        count += 1;
        return end(transaction, { id, callbackUrl: count % 10 === 0 ? undefined : callbackUrl }, ...given);
      };
    },
  },
};
