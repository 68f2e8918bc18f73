/** Where answers about members are kept, and asking for them again after a change. */
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { askAgain } from '../../../api/again.ts';

export const membersKey = ['members'] as const;
export const invitationsKey = ['members', 'invitations'] as const;

/** A change of the company's sign-in, after which the page shows what is there then. */
export type CompanyChange = (method: 'POST' | 'DELETE', path: string, body?: object) => Promise<void>;

export function useMembersChanged(): (message: string) => Promise<void> {
  const queries = useQueryClient();
  return async (message) => {
    notifications.show({ message, color: 'teal' });
    await askAgain(queries, membersKey);
  };
}
