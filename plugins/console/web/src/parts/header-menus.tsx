/** Header menus of all pages: light or dark, and the language. */
import { ActionIcon, Menu, useMantineColorScheme } from '@mantine/core';
import { IconCheck, IconDeviceDesktop, IconLanguage, IconMoon, IconSun } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { languageName, languages, speak } from '../texts/index.ts';

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
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.language')}>
          <IconLanguage size={18} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {languages.map((language) => (
          <Menu.Item
            key={language}
            lang={language}
            rightSection={language === i18n.language ? <IconCheck size={14} /> : undefined}
            onClick={() => void speak(language)}
          >
            {languageName(language)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
