/** The right end of the header: balance, colours, language, the person. */
import { ActionIcon, Avatar, Group, Menu, Text, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import {
  IconCheck,
  IconDeviceDesktop,
  IconLanguage,
  IconLogout,
  IconMoon,
  IconSun,
  IconUser,
} from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, signOut, useMe, usePerson } from '../api/session.ts';
import { type Language, languages, speak } from '../texts/index.ts';
import { BalanceChip } from './balance-chip.tsx';

export function HeaderTools() {
  const me = useMe();
  return (
    <Group gap={6} wrap="nowrap">
      {me.account !== null && has(me, 'wallet') && <BalanceChip />}
      <ColorsMenu />
      <LanguageMenu />
      <PersonMenu />
    </Group>
  );
}

export function ColorsMenu() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const choices = { light: IconSun, dark: IconMoon, auto: IconDeviceDesktop } as const;
  const Current = choices[colorScheme];
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.theme.label')}>
          <Current size={18} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(['light', 'dark', 'auto'] as const).map((choice) => {
          const Picture = choices[choice];
          return (
            <Menu.Item
              key={choice}
              leftSection={<Picture size={16} />}
              rightSection={choice === colorScheme ? <IconCheck size={14} /> : undefined}
              onClick={() => setColorScheme(choice)}
            >
              {t(`shell.theme.${choice}`)}
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}

export function LanguageMenu() {
  const { t, i18n } = useTranslation();
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.language')} visibleFrom="xs">
          <IconLanguage size={18} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(languages) as Language[]).map((language) => (
          <Menu.Item
            key={language}
            lang={language}
            rightSection={language === i18n.language ? <IconCheck size={14} /> : undefined}
            onClick={() => void speak(language)}
          >
            {languages[language]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function PersonMenu() {
  const { t } = useTranslation();
  const person = usePerson();
  const navigate = useNavigate();
  const leave = async () => {
    await signOut();
    await navigate({ to: '/sign-in' });
  };
  return (
    <Menu position="bottom-end" shadow="md" width={220}>
      <Menu.Target>
        <UnstyledButton aria-label={person.name || person.email} className="person-button">
          <Avatar size={30} radius="xl" name={person.name || person.email} color="initials" />
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
