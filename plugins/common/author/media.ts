/** `media` of the kit: what adapters of media APIs are made of. */
export { failedTask, readObject, unreadable } from '../media/outcome.ts';
export { addressOf } from '../media/references.ts';
export { droppedMembers, fieldOf, refuseRoles, unsupported } from '../media/refuse.ts';
