/** Pages for those who are not signed in. */
import type { PageEntry } from '../page-entry.ts';

export const entryPages: readonly PageEntry[] = [{ path: '/sign-in', load: () => import('./sign-in.tsx') }];
