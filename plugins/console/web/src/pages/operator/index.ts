/** The operator's pages, in the order of the sidebar. */
import type { PageEntry } from '../page-entry.ts';

export const operatorPages: readonly PageEntry[] = [];
