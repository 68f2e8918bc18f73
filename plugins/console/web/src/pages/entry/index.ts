/** Pages for those who are not signed in. */
import type { PageEntry } from '../page-entry.ts';

export const entryPages: readonly PageEntry[] = [
  { path: '/welcome', load: () => import('../public/welcome.tsx') },
  { path: '/status', load: () => import('../public/status.tsx') },
  { path: '/legal/$name', load: () => import('../public/legal.tsx') },
  { path: '/sign-in', load: () => import('./sign-in.tsx') },
  { path: '/sign-up', load: () => import('./sign-up.tsx') },
  { path: '/verify', load: () => import('./verify.tsx') },
  { path: '/forgot-password', load: () => import('./forgot-password.tsx') },
  { path: '/reset-password', load: () => import('./reset-password.tsx') },
  { path: '/first', load: () => import('./first-operator.tsx') },
];
