/** A page's entry in the router and the sidebar. */
import type { Icon } from '@tabler/icons-react';
import type { ComponentType } from 'react';
import type { Feature } from '../api/types.ts';

/** Headings of the sidebar, in their order. */
export const pageGroups = ['traffic', 'customers', 'sales', 'system'] as const;
type PageGroup = (typeof pageGroups)[number];

export interface PageEntry {
  /** Below /console, as the router writes it: `/admin/accounts/$id`. */
  readonly path: string;
  /** Loaded when the page is opened for the first time. */
  readonly load: () => Promise<{ default: ComponentType }>;
  /** Its line in the sidebar; absent: it is reached from another page. */
  readonly link?: {
    /** Key of its text. A getter, so that it follows the language. */
    readonly text: () => string;
    readonly icon: Icon;
    /** The group in the sidebar; absent: the pages of the own account. */
    readonly group?: PageGroup;
  };
  /** Parts that the gateway must have; one that is missing hides the page. */
  readonly needs?: readonly Feature[];
}
