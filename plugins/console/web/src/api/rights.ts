/** What the role of the person includes in the account that they act in, by the table that the API guards its routes by. */
import { useMe } from './session.ts';
import type { Me } from './types.ts';

type Right = NonNullable<Me['account']>['rights'][number];

/** What is refused to a role is neither shown nor requested. */
export const useRight = (right: Right): boolean => useMe().account?.rights.includes(right) === true;
