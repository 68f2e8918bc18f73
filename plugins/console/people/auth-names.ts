/** Names that the sign-in and the code in front of it share. */

export const authPath = '/console/api/auth';
/** Where a request came from: set by the gateway itself, over whatever a client sends. */
export const addressHeader = 'x-console-address';
