/** English texts of connecting a program: the page of a code, and the command in set-ups. */
export default {
  connect: {
    title: 'Connect a program',
    enter: 'Enter the code that the program shows.',
    code: 'Code',
    next: 'Continue',
    asks: '{{program}} asks for a key',
    careful: 'Allow it only if you have just begun this yourself and the program shows this code.',
    program: 'Program',
    machine: 'Machine',
    address: 'Asks from',
    account: 'Key of',
    name: '{{program}} on {{machine}}',
    allow: 'Allow',
    deny: 'Deny',
    granted: 'The program gets its key now',
    grantedHint: 'Go back to it. You can change and revoke the key under Keys.',
    denied: 'The program gets no key',
    deniedHint: 'Nothing has changed in your account.',
    oneLine: 'One command asks here for a key, shows what it writes, makes one call, and can take it back:',
    byHand: 'Or by hand:',
  },
};
