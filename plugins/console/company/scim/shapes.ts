/** Bodies of SCIM 2.0 (RFC 7643, RFC 7644): errors, lists, and what this gateway can do. */

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group';
const messages = 'urn:ietf:params:scim:api:messages:2.0';

export type ScimType = 'uniqueness' | 'invalidValue' | 'invalidFilter' | 'invalidPath' | 'invalidSyntax' | 'mutability';

/** https://www.rfc-editor.org/rfc/rfc7644#section-3.12 */
export class ScimError extends Error {
  override readonly name = 'ScimError';
  readonly status: number;
  readonly scimType: ScimType | undefined;
  constructor(status: number, detail: string, scimType?: ScimType) {
    super(detail);
    this.status = status;
    this.scimType = scimType;
  }
}

export const wrong = (detail: string, scimType: ScimType = 'invalidValue') => new ScimError(400, detail, scimType);
export const missing = () => new ScimError(404, 'There is no such resource.');

export const errorBody = ({ status, message, scimType }: ScimError) => ({
  schemas: [`${messages}:Error`],
  status: String(status),
  detail: message,
  ...(scimType === undefined ? {} : { scimType }),
});

export interface Paging {
  readonly startIndex: number;
  readonly count: number;
}
const mostRows = 200;

/** Indexes begin with 1; what is no number is as if it were absent. */
export function pagingOf(query: URLSearchParams): Paging {
  const whole = (name: string, usual: number) => {
    const given = Number(query.get(name) ?? usual);
    return Number.isInteger(given) ? given : usual;
  };
  return {
    startIndex: Math.min(Math.max(whole('startIndex', 1), 1), 1_000_000),
    count: Math.min(Math.max(whole('count', 100), 0), mostRows),
  };
}

export const listBody = (rows: readonly object[], total: number, { startIndex }: Paging) => ({
  schemas: [`${messages}:ListResponse`],
  totalResults: total,
  startIndex,
  itemsPerPage: rows.length,
  Resources: rows,
});

export interface Filter {
  readonly attribute: string;
  readonly value: string;
}

/** One comparison by `eq`, which is what directories look for people and groups by. */
export function filterOf(query: URLSearchParams, known: readonly string[]): Filter | undefined {
  const text = query.get('filter');
  if (text === null || text.trim() === '') return undefined;
  const found = /^\s*([\w.]+)\s+eq\s+"((?:[^"\\]|\\.)*)"\s*$/i.exec(text);
  const attribute = known.find((name) => name.toLowerCase() === found?.[1]?.toLowerCase());
  if (found === null || attribute === undefined)
    throw wrong(`A filter is one of ${known.join(', ')} with eq and a text in quotes.`, 'invalidFilter');
  return { attribute, value: found[2]!.replace(/\\(.)/g, '$1') };
}

export const serviceProvider = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: mostRows },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [{ type: 'oauthbearertoken', name: 'Bearer token', description: 'The token of the account.' }],
};

const resourceType = (name: string, endpoint: string, schema: string) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
  ...{ id: name, name, endpoint, schema },
});
export const resourceTypes = [
  resourceType('User', '/Users', userSchema),
  resourceType('Group', '/Groups', groupSchema),
];

const attribute = (name: string, more: object = {}) => ({
  ...{ name, type: 'string', multiValued: false, required: false, caseExact: false },
  ...{ mutability: 'readWrite', returned: 'default', uniqueness: 'none', ...more },
});
const value = attribute('value');
export const schemas = [
  {
    id: userSchema,
    name: 'User',
    attributes: [
      attribute('userName', { required: true, uniqueness: 'server' }),
      attribute('displayName'),
      attribute('externalId', { caseExact: true }),
      attribute('active', { type: 'boolean' }),
      attribute('name', { type: 'complex', subAttributes: [attribute('givenName'), attribute('familyName')] }),
      attribute('emails', { type: 'complex', multiValued: true, subAttributes: [value, attribute('type')] }),
    ],
  },
  {
    id: groupSchema,
    name: 'Group',
    attributes: [
      attribute('displayName', { required: true, uniqueness: 'server' }),
      attribute('externalId', { caseExact: true }),
      attribute('members', { type: 'complex', multiValued: true, subAttributes: [value] }),
    ],
  },
];
