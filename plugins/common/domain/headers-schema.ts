/** Type of configured headers. */
import { z } from '../../../core/contract/schema.ts';

export const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/i, 'must be a header name');
export const headerValue = z.string().regex(/^[\t\x20-\x7e]{1,2000}$/, 'must be printable ASCII on one line');

/** Values by lower-case name. */
export const headersSchema = z
  .record(headerName, headerValue)
  .transform((headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
