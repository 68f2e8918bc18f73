/** Projects of accounts: what keys work for. Calls keep the id of theirs, whatever becomes of the key. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { Page, PageRequest } from '../admin/pages.ts';

export interface ProjectTerms {
  readonly name: string;
  /** Id of the person in charge; undefined: it has none. */
  readonly owner?: string | undefined;
  /** Models that its keys may call, within what each may by itself; undefined: all. */
  readonly models?: readonly string[] | undefined;
  /** Regions in which calls of its keys may be processed; undefined: anywhere. */
  readonly regions?: readonly string[] | undefined;
}

export interface ProjectView extends ProjectTerms {
  readonly id: string;
  readonly accountId: string;
  readonly createdAt: number;
  /** Since when its keys are refused; undefined: they are not. */
  readonly archivedAt: number | undefined;
  /** Number of its keys that are not revoked. */
  readonly keys: number;
}

/** Throws `not_found` for a project of another account. Changes are in force within a second. */
export interface ProjectAdmin {
  /** By name. `archived`: only those that are, or are not. */
  list(
    accountId: string,
    filter: { readonly archived?: boolean | undefined },
    page: PageRequest,
  ): Promise<Page<ProjectView>>;
  find(accountId: string, projectId: string): Promise<ProjectView | undefined>;
  named(accountId: string, name: string): Promise<ProjectView | undefined>;
  /** `conflict`: the account has one of this name, or as many as there may be. */
  create(accountId: string, terms: ProjectTerms): Promise<ProjectView>;
  /** Replaces all terms; its keys go with its name. */
  change(accountId: string, projectId: string, terms: ProjectTerms): Promise<ProjectView>;
  /** Keys of an archived project are refused, and none is put into it. */
  setArchived(accountId: string, projectId: string, archived: boolean): Promise<ProjectView>;
  /** By id; at most 500. */
  namesOf(accountId: string, projectIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Provided by `auth`. */
export const projectAdmin = defineService<ProjectAdmin>('project admin');
