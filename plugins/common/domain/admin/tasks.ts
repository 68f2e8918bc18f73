/** The console's contract: the service that lists and cancels tasks. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { Page, PageRequest } from './pages.ts';

export const taskStates = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const;

export interface TaskView {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly kind: 'image' | 'video';
  readonly model: string;
  readonly state: (typeof taskStates)[number];
  readonly progress: number;
  readonly prompt: string;
  readonly createdAt: number;
  readonly completedAt: number | undefined;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  readonly results: readonly TaskResultView[];
  readonly cancellable: boolean;
}

interface TaskResultView {
  /** A signed address, good for a while; undefined: the file has expired. */
  readonly url: string | undefined;
  readonly mediaType: string;
  /** When the file is deleted. */
  readonly expiresAt: number | undefined;
}

export interface TaskAdmin {
  list(
    filter: {
      readonly accountId?: string | undefined;
      readonly kind?: 'image' | 'video' | undefined;
      readonly states?: readonly TaskView['state'][] | undefined;
    },
    page: PageRequest,
    host: string | undefined,
  ): Promise<Page<TaskView>>;
  /** States of the tasks that these requests of accounts have made, by the requests' ids. */
  statesOf(
    orders: readonly { readonly requestId: string; readonly accountId: string }[],
  ): Promise<ReadonlyMap<string, TaskView['state']>>;
  find(id: string, accountId: string | undefined, host: string | undefined): Promise<TaskView | undefined>;
  /** Throws conflict for a task that has begun, not_found for another account's. */
  cancel(id: string, accountId: string | undefined, signal: AbortSignal): Promise<void>;
}

export const taskAdmin = defineService<TaskAdmin>('task admin');
