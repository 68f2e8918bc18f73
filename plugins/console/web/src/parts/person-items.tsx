/** What the menu of the person has: the account they act in, the others, the profile, the way out. Loaded when it is opened. */
import { Menu, Text } from '@mantine/core';
import { IconCheck, IconLogout, IconUser, IconUsers } from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { send } from '../api/client.ts';
import { queries, signOut, useMe, usePerson } from '../api/session.ts';
import './member-texts.ts';

/** Another account has other pages: everything is asked for again, in this tab. New tabs begin in it too. */
async function choose(accountId: string): Promise<void> {
  await send('POST', '/members/choose', { accountId });
  sessionStorage.clear();
  sessionStorage.setItem('account', accountId);
  location.assign('/console/');
}

export default function PersonItems() {
  const { t } = useTranslation();
  const person = usePerson();
  const navigate = useNavigate();
  return (
    <>
      <Menu.Label>
        <Text fz="sm" fw={600} truncate>
          {person.name}
        </Text>
        <Text fz="xs" c="dimmed" truncate>
          {person.email}
        </Text>
      </Menu.Label>
      <Accounts />
      <Menu.Divider />
      <Menu.Item leftSection={<IconUser size={16} />} renderRoot={(props) => <Link {...props} to="/profile" />}>
        {t('shell.profile')}
      </Menu.Item>
      <Menu.Item
        leftSection={<IconLogout size={16} />}
        onClick={() => void signOut(() => navigate({ to: '/sign-in' }))}
      >
        {t('shell.signOut')}
      </Menu.Item>
    </>
  );
}

function Accounts() {
  const { t } = useTranslation();
  const { account, accounts } = useMe();
  if (account === null && accounts.length === 0) return null;
  return (
    <>
      <Menu.Divider />
      {accounts.length > 1 &&
        accounts.map(({ id, name, role }) => (
          <Menu.Item
            key={id}
            aria-current={id === account?.id}
            rightSection={id === account?.id ? <IconCheck size={14} aria-hidden /> : undefined}
            onClick={() => (id === account?.id ? undefined : void choose(id).catch(() => queries.invalidateQueries()))}
          >
            <Text fz="sm" truncate>
              {name}
            </Text>
            <Text fz="xs" c="dimmed">
              {t(`client.members.role.${role}`)}
            </Text>
          </Menu.Item>
        ))}
      {account !== null && (
        <Menu.Item leftSection={<IconUsers size={16} />} renderRoot={(props) => <Link {...props} to="/members" />}>
          {t('client.members.title')}
        </Menu.Item>
      )}
    </>
  );
}
