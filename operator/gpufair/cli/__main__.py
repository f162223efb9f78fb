from gpufair.cli import main

main()
