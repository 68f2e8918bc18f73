/** The console's contract: the service that lists and deletes the uploaded files of all accounts. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { UploadedFile } from '../stored-files.ts';
import type { Page, PageRequest } from './pages.ts';

export interface OwnedFile extends UploadedFile {
  readonly accountId: string;
}

export interface FileAdmin {
  /** Newest first. */
  list(
    filter: { readonly accountId?: string | undefined; readonly purpose?: string | undefined },
    page: PageRequest,
  ): Promise<Page<OwnedFile>>;
  find(fileId: string): Promise<OwnedFile | undefined>;
  /** Bytes of all files of this account in the store: generated ones, unfinished uploads, and those that are being deleted. */
  storedBytes(accountId: string): Promise<number>;
  /** false: there is no such file. */
  remove(fileId: string): Promise<boolean>;
}

export const fileAdmin = defineService<FileAdmin>('file admin');
