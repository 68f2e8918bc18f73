/** The codes of errors about what accounts store: files, and vector stores of them. */
import { of, waits } from './limit-codes.ts';

export const storeCodes = {
  file_exists: of('conflict', 'There is a file of this name.', 'Choose another name.'),
  file_not_found: of(
    'not_found',
    'There is no such file of this account.',
    'Upload it again; files are kept for a limited time.',
  ),
  file_space_used_up: of('forbidden', 'The files of the account fill its space.', 'Delete files.'),
  files: of('rate_limited', 'Too many files are being sent.', waits),
  too_many_files: of('forbidden', 'The account has as many files as it may.', 'Delete files.'),
  vector_store_expired: of(
    'invalid_request',
    'The vector store has not been used for as long as it was to be kept.',
    'Create another one.',
  ),
  vector_store_not_found: of('not_found', 'There is no such vector store of this account.', 'Check the id.'),
  vector_store_searches: of(
    'rate_limited',
    'The account has too many searches of vector stores running at once.',
    waits,
  ),
  vector_store_space_used_up: of(
    'forbidden',
    'The account has as many vector stores, or files in them, as it may.',
    'Delete some.',
  ),
};
