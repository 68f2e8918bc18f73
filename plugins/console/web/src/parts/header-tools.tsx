/** The right end of the header: balance, colours, language, the person. */
import { Avatar, Box, Group, Menu, Text, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { IconLogout, IconUser } from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, signOut, useMe, usePerson } from '../api/session.ts';
import { BalanceChip } from './balance-chip.tsx';
import { CommandButton } from './command-button.tsx';
import { ColorsMenu, LanguageMenu } from './header-menus.tsx';

export function HeaderTools() {
  const me = useMe();
  return (
    <Group gap={6} wrap="nowrap">
      <CommandButton />
      {me.account !== null && has(me, 'wallet') && <BalanceChip />}
      <ColorsMenu />
      <Box visibleFrom="xs">
        <LanguageMenu />
      </Box>
      <PersonMenu />
    </Group>
  );
}

function PersonMenu() {
  const { t } = useTranslation();
  const person = usePerson();
  const navigate = useNavigate();
  const leave = async () => {
    await signOut(() => navigate({ to: '/sign-in' }));
  };
  return (
    <Menu position="bottom-end" shadow="md" width={220}>
      <Menu.Target>
        <UnstyledButton className="person-button">
          <Avatar size={30} radius="xl" name={person.name || person.email} color="iris" aria-hidden />
          <VisuallyHidden>{person.name || person.email}</VisuallyHidden>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text fz="sm" fw={600} truncate>
            {person.name}
          </Text>
          <Text fz="xs" c="dimmed" truncate>
            {person.email}
          </Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item leftSection={<IconUser size={16} />} renderRoot={(props) => <Link {...props} to="/profile" />}>
          {t('shell.profile')}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void leave()}>
          {t('shell.signOut')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
