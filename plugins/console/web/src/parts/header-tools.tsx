/** The right end of the header: balance, colours, language, the person. */
import { ActionIcon, Avatar, Box, Group, Kbd, Menu, Text, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe, usePerson } from '../api/session.ts';
import { BalanceChip } from './balance-chip.tsx';
import { ColorsMenu, LanguageMenu } from './header-menus.tsx';
import { isTyping } from './typing.ts';

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

const PersonItems = lazy(() => import('./person-items.tsx'));

function PersonMenu() {
  const person = usePerson();
  return (
    <Menu position="bottom-end" shadow="md" width={220}>
      <Menu.Target>
        <UnstyledButton className="person-button">
          <Avatar size={30} radius="xl" name={person.name || person.email} color="iris" aria-hidden />
          <VisuallyHidden>{person.name || person.email}</VisuallyHidden>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Suspense>
          <PersonItems />
        </Suspense>
      </Menu.Dropdown>
    </Menu>
  );
}

const Command = lazy(() => import('./command.tsx'));

function CommandButton() {
  const { t } = useTranslation();
  const [mode, setMode] = useState<'search' | 'keys'>();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const wanted = modeOf(event);
      if (wanted === undefined) return;
      event.preventDefault();
      setMode(wanted);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <>
      <UnstyledButton className="command-button" visibleFrom="sm" onClick={() => setMode('search')}>
        <IconSearch size={14} aria-hidden />
        <Text span fz="xs" c="dimmed">
          {t('shell.command.title')}
        </Text>
        <Kbd size="xs">⌘K</Kbd>
      </UnstyledButton>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        hiddenFrom="sm"
        aria-label={t('shell.command.title')}
        onClick={() => setMode('search')}
      >
        <IconSearch size={18} stroke={1.7} />
      </ActionIcon>
      {mode !== undefined && (
        <Suspense>
          <Command mode={mode} onClose={() => setMode(undefined)} />
        </Suspense>
      )}
    </>
  );
}

function modeOf({ key, metaKey, ctrlKey, altKey, target }: KeyboardEvent): 'search' | 'keys' | undefined {
  if (key.toLowerCase() === 'k' && (metaKey || ctrlKey) && !altKey) return 'search';
  return key === '?' && !isTyping(target) && !metaKey && !ctrlKey ? 'keys' : undefined;
}
